"""Value functions and formula helpers, one file a family. What they define is in scope of the table's formulas."""
