"""``python -m thinkback``."""

from thinkback.cli import main

if __name__ == "__main__":
    main()
