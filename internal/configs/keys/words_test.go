package keys_test

import (
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/configs/keys"
)

// The examples of sections in whose place users write one value are right.
func TestExamplesOfSections(t *testing.T) {
	for name, text := range keys.SectionExamples {
		for _, example := range strings.Split(text, " or ") {
			set := example
			switch name {
			case "slow", "pause":
				set = "faults=[{worker: 1, " + example + "}]"
			case "stop":
				set = "train={" + example + ", batch_per_worker: 8, optimizer: {name: sgd, lr: 0.1}}"
			default:
				key, value, _ := strings.Cut(example, ": ")
				set = key + "=" + value
			}
			if _, _, ds := configs.Parse("base.yaml", []byte(configstest.Base), configs.Options{Set: []string{set}}); ds.Failed() {
				t.Errorf("%s: %s", set, ds.JSON())
			}
		}
	}
}
