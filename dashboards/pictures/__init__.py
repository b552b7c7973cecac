"""Pictures that pages draw themselves."""
