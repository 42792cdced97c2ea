"""What benchmarks share: processes, CPU clocks, load, statistics, reports."""
