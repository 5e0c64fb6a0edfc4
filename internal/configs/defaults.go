package configs

import (
	"fmt"
	"strconv"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/work"
)

// imagePixelsMax is the limit on the values of an image, because it is that of data.features.
const imagePixelsMax = 1_000_000

// generatedImages sets the default of data.features to the number of values of an image, and refuses any other number.
func (w *walker) generatedImages(t *keys.Table) {
	image, features := t.ByPath["data.image"], t.ByPath["data.features"]
	if image.Key == nil || image.Bad || w.Config.Data.Set != "generated" {
		return
	}
	values := 1
	for _, n := range w.Config.Data.Image {
		values = min(values*n, imagePixelsMax+1)
	}
	switch {
	case len(w.Config.Data.Image) != 3:
		w.Fatal(image.Node, image.Path, "write three numbers, such as [3, 32, 32]",
			"an image has channels, height and width, not %d numbers", len(w.Config.Data.Image))
	case values > imagePixelsMax:
		w.Fatal(image.Node, image.Path, "make it smaller", "an image has at most %d values", imagePixelsMax)
	case features.Key != nil && !features.Bad && w.Config.Data.Features != values:
		w.Fatal(features.Node, features.Path, fmt.Sprintf("remove it, or set %d", values),
			"%d differs from the %d values of an image of data.image", w.Config.Data.Features, values)
	default:
		t.SetDefault("data.features", strconv.Itoa(values))
		return
	}
	image.Bad = true
}

// takesSteps says whether workers take steps of their own. sync may stand before local, so the walker looks at the tree.
func (w *walker) takesSteps() bool {
	if w.Tree == nil {
		return false
	}
	n := diag.Child(w.Tree, "local")
	if n == nil {
		return false
	}
	policy := diag.ValueOf(n, "policy")
	_, known := local.All.Lookup(policy)
	return known && policy != local.None
}

// pushesChanges makes delta the default of push in a rule where workers take steps of their own.
func (w *walker) pushesChanges(t *keys.Table) {
	if w.takesSteps() {
		t.SetDefault("push", settings.PushDelta)
	}
}

// localDefaults gives keys the defaults of the policy.
func (w *walker) localDefaults(t *keys.Table) {
	e, _ := local.All.Lookup(w.Config.Local.Policy)
	for path, def := range e.Defaults {
		t.SetDefault(path, def)
	}
}

// workDefaults makes the scheme that a policy needs the default.
func (w *walker) workDefaults(t *keys.Table) {
	if e, _ := work.All.Lookup(w.Config.Work.Policy); e.Scheme != "" {
		own := ""
		if e.Copies {
			own = fmt.Sprintf(", required: %d", w.Config.Work.Required)
		}
		t.SetDefault("sync", fmt.Sprintf(`[{match: "*", scheme: %s%s}]`, e.Scheme, own))
	}
}
