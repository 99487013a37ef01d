"""Build package sets from the data folder and check them."""
