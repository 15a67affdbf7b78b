import unittest

from prices import total


class Totals(unittest.TestCase):
    def test_prices_are_added_up(self) -> None:
        self.assertEqual(total([20.0, 30.0]), 50.0)
