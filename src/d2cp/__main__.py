"""`python -m d2cp`, and `accelerate launch -m d2cp`."""

from d2cp.cli import main

if __name__ == "__main__":
    main()
