"""The tools that come with thinkback: files and commands of one directory, the workspace."""
