"""What an operator is: its dtypes, abstract values, programs and derivative rules."""
