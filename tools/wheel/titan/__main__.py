"""python3 -m titan: the same as titan."""

from titan import main

main()
