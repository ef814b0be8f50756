"""The command line `mt-service VERB`. Each verb is a module whose function `main(argv)` returns the exit status."""
