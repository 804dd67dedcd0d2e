"""What tests share: recorded answers, comparisons, samples as problems, limits on time and work."""
