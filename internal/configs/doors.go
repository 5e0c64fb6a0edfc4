package configs

import (
	"io"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/idle"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/schema"
	"fluentps/internal/configs/settings"
	"fluentps/internal/policy/payload"
)

// The rest of the program enters the rooms of this package here.

// What a configuration holds; see package settings.
type (
	Config     = settings.Config
	Device     = settings.Device
	Facts      = settings.Facts
	Fault      = settings.Fault
	FaultPause = settings.FaultPause
	Length     = settings.Length
	Network    = settings.Network
	Optimizer  = settings.Optimizer
	Phase      = settings.Phase
	Rule       = settings.Rule
	Simulate   = settings.Simulate
	Stall      = settings.Stall
	Stop       = settings.Stop
	Traces     = settings.Traces
)

// Where values come from, and what is wrong with them; see package diag. Key is a row of explain; see package keys.
type (
	Diagnostics = diag.Diagnostics
	Origins     = diag.Origins
	Key         = keys.Key
)

// Values of keys; see package settings.
const (
	PushDelta         = settings.PushDelta
	BaselineNone      = settings.BaselineNone
	BaselineAllreduce = settings.BaselineAllreduce
	BaselinePSLite    = settings.BaselinePSLite
	HierarchyNone     = settings.HierarchyNone
	HierarchyNode     = settings.HierarchyNode
	SharedAuto        = settings.SharedAuto
	SharedOff         = settings.SharedOff
	BindAuto          = settings.BindAuto
	BestNone          = settings.BestNone
	BestAccuracy      = settings.BestAccuracy
	BestLoss          = settings.BestLoss
	CUDAAwareOn       = settings.CUDAAwareOn
	CUDAAwareOff      = settings.CUDAAwareOff
)

// Warning is the weight of a diagnostic that only check --strict refuses.
const Warning = diag.Warning

// Keys lists all keys in the order of the resolved form, with what explain says of them.
func Keys() []Key { return keys.All() }

// Schema returns the JSON Schema of the YAML.
func Schema() []byte { return schema.JSON() }

// Resolved writes every value as YAML that loads to an equal Config; o, if it is not nil, says where each value comes from.
func Resolved(w io.Writer, c *Config, o *Origins) error { return keys.Resolved(w, c, o) }

// Hash returns the SHA-256 of the resolved form, in hexadecimal.
func Hash(c *Config) string { return keys.Hash(c) }

// Values returns every value by its path, in its resolved form.
func Values(c *Config) map[string]string { return keys.Values(c) }

// Changed lists the keys that a run must not change when it resumes, and whose values differ from those of a checkpoint.
func Changed(old map[string]string, c *Config) []string { return keys.Changed(old, c) }

// FaultText writes a fault as an item of faults, without what is a default: {worker: 3, slow: {factor: 5}}.
func FaultText(f *Fault) string { return keys.FaultText(f) }

// FormatSize writes a size with the largest unit of which it is a whole number.
func FormatSize(bytes int64) string { return diag.FormatSize(bytes) }

// Nearest returns the legal words that a mistyped word was probably meant to be.
func Nearest(word string, legal []string) []string { return diag.Nearest(word, legal) }

// Idle returns the warnings that the facts of a run add to those of Parse.
func Idle(c *Config, o *Origins, f Facts) Diagnostics { return idle.More(c, o, f) }

// Misfit returns what the configuration asks for, and that many ranks and rows cannot do.
func Misfit(c *Config, o *Origins, f Facts) Diagnostics { return idle.Misfit(c, o, f) }

// MadeUp reports whether the data are generated, so that the configuration has the number of rows.
func MadeUp(c *Config) bool { return settings.MadeUp(c) }

// PlainCodec makes the codec that changes nothing.
func PlainCodec() payload.Codec { return settings.PlainCodec() }
