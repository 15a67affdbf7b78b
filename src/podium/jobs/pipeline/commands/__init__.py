"""Commands of this job."""
