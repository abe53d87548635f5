"""The command line: thin. One file a command, loaded when it is called."""
