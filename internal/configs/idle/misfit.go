package idle

import (
	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/settings"
)

// Misfit returns the errors of a configuration that does not fit the ranks and rows of a run, as far as they are known.
func Misfit(c *settings.Config, o *diag.Origins, f settings.Facts) (all diag.Diagnostics) {
	if f.Computes == 0 {
		return nil
	}
	rows := f.Rows
	if rows == 0 {
		rows = f.Computes // enough for any policy
	}
	if path, err := c.Undealt(f.Computes, rows); err != nil {
		all = append(all, o.Refuse(path, err))
	}
	return all
}
