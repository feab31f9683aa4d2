"""What is wrong with files and command lines that start engines, before anything is started. No I/O."""
