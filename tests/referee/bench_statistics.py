"""Prints the values that tests/plugins/commands/bench/statistics_test.cpp expects, computed by scipy.

    bench_statistics.py     (needs scipy, of requirements-test.txt)

Both sides use the sequence 7 i mod 101. scipy's bounds are values of the sequence; the interval's coverage is at least
the requested confidence.
"""

import numpy
from scipy.stats import quantile_test


def main():
    for count in (6, 7, 8, 9, 12, 25, 60, 100):
        for confidence in (0.95, 0.99):
            values = numpy.array([7 * i % 101 for i in range(1, count + 1)], dtype=float)
            interval = quantile_test(values, p=0.5).confidence_interval(confidence)
            if numpy.isnan(interval.low) or numpy.isnan(interval.high):
                continue
            print(f"    Expected{{{count}, {confidence}, {numpy.median(values):g}, {interval.low:g}, {interval.high:g}}},")


if __name__ == "__main__":
    main()
