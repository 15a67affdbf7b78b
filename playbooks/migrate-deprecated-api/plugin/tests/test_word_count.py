import unittest

from notebox import Host

from word_count import count, label


class WordCountTest(unittest.TestCase):
    def test_words_are_counted_without_the_ignored_ones(self):
        host = Host({"word_count.ignored": "a,the", "word_count.separators": "-/"})
        self.assertEqual(count(host, "The quick-brown fox/dog"), 4)

    def test_without_settings_every_word_counts(self):
        self.assertEqual(count(Host({}), "one two-three"), 2)

    def test_the_unit_can_be_set(self):
        self.assertEqual(label(Host({"word_count.unit": "Wörter"}), "eins zwei"), "2 Wörter")
        self.assertEqual(label(Host({}), "one"), "1 words")
