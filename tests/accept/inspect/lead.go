package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fluentps/internal/show/metrics"
)

// lead prints the largest lead that the records of a run show.
func lead(dir string) error {
	all, err := metrics.ReadIterations(filepath.Join(dir, metrics.IterationsName))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, metrics.SummaryName))
	if err != nil {
		return err
	}
	var s metrics.Summary
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	fmt.Println(metrics.LeadsOf(all, time.Duration(s.ClockErrorNS)).Max(all))
	return nil
}
