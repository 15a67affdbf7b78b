"""`python -m podium`: the same as `podium`."""

from podium.cli.start import main

main()
