"""`python -m pi_tui`."""

from pi_tui.cli import main

if __name__ == "__main__":
    main()
