"""Deep backlogs: order stays right and memory bounded, however much is stored."""
