"""Command line: its main program, its parser, and the options that commands share."""
