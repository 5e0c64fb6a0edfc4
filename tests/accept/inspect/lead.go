package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
)

// lead prints the largest lead that the records of a run show.
func lead(dir string) error {
	all, err := timings.Read(filepath.Join(dir, timings.FileName))
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
	fmt.Println(timings.LeadsOf(all, time.Duration(s.ClockErrorNS)).Max(all))
	return nil
}
