"""Reports on the recorded graph: drawings, explanations, memory, anomalies."""
