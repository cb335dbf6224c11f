"""The paper's case study: catching a ball on a flat plate."""
