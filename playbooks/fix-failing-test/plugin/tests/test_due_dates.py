import unittest
from datetime import date

from due_dates import due


class DueDatesTest(unittest.TestCase):
    def test_a_day_is_taken_as_it_is(self):
        self.assertEqual(due("taxes, due 2031-05-31", date(2031, 1, 1)), date(2031, 5, 31))

    def test_weeks_and_days_are_counted(self):
        self.assertEqual(due("due in 2 weeks", date(2031, 1, 1)), date(2031, 1, 15))
        self.assertEqual(due("due in 1 day", date(2031, 1, 1)), date(2031, 1, 2))

    def test_a_month_that_is_too_short_ends_on_its_last_day(self):
        self.assertEqual(due("due in 1 month", date(2031, 1, 31)), date(2031, 2, 28))

    def test_months_go_on_into_the_next_year(self):
        self.assertEqual(due("due in 3 months", date(2031, 11, 15)), date(2032, 2, 15))
        self.assertEqual(due("due in 14 months", date(2031, 11, 15)), date(2033, 1, 15))

    def test_a_note_without_one_has_none(self):
        self.assertIsNone(due("overdue in a way", date(2031, 1, 1)))
