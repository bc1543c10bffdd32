"""python -m hq: the command."""

from hq.cli.main import main

main()
