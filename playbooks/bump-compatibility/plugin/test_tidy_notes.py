import unittest

from tidy_notes import tidy


class TidyTest(unittest.TestCase):
    def test_notes_come_in_the_order_of_their_headings(self):
        self.assertEqual(tidy(["# b", "plain", "# A"]), ["# A", "# b", "plain"])


if __name__ == "__main__":
    unittest.main()
