"""config: print the settings of this folder with their origins."""
