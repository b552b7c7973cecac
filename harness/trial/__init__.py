"""One trial, inside one interpreter: what it is asked, how it is driven, what is measured."""
