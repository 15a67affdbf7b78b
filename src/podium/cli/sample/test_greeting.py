import unittest

from greeting import greet


class Greeting(unittest.TestCase):
    def test_is_polite(self) -> None:
        self.assertEqual(greet("Ada"), "Good morning, Ada!")
