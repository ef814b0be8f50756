"""The command line. Each verb is a module with `main(argv) -> int`."""
