"""Inside of the stand-in for the vendor's ``mindio_ttp``: controller, processors, and the messages between them."""
