"""The paper's simulation section: runs, results, claims, distances, theory."""
