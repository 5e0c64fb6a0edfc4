package schema

import "fluentps/internal/configs/keys"

// awaitForm is the schema of an until that waits for a straggler.
func awaitForm() *form {
	words, factor, rounds := &form{Enum: words(keys.StragglerSpec.Words())}, &form{}, &form{}
	factor.number("number", &keys.Leaf{Spec: &keys.FactorSpec})
	rounds.number("integer", &keys.Leaf{Spec: &keys.RoundsSpec})
	return &form{Type: "object", Properties: map[string]any{"straggler": words, "factor": factor, "rounds": rounds},
		Required: []string{"straggler"}, Further: false}
}
