"""What the operating system has a say in: files of strangers, directories that one run has for itself, and limits."""
