"""Reports on the graph: drawings, explanations, memory, anomalies."""
