"""What every layer may use: kinds of values, aligned memory, isolation, providers, plug-ins, logs, uncaught errors."""
