"""``python -m cfmaps``, and what the command ``cfmaps`` runs."""

import sys


def main() -> None:
    """Run the command line, or say how to install it."""
    try:
        from cfmaps.cli import main as run
    except ImportError as error:
        sys.exit(f"the command line needs click and rich ({error}): pip install 'cfmaps[cli]'")
    run(prog_name="cfmaps")


if __name__ == "__main__":
    main()
