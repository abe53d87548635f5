"""A training script that cannot be imported."""

import no_such_library_of_the_job  # type: ignore[import-not-found]  # noqa: F401
