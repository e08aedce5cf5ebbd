import signal

# A shell that starts the suite in the background leaves Ctrl-C ignored, also for the processes that tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
