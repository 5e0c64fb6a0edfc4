package schema

// costForms are the schemas of the two ways to write a cost.
func costForms() []*form {
	part := &form{Type: "string", Pattern: timeSchema}
	return []*form{part, {Type: "object", Properties: map[string]any{"fixed": part, "per_sample": part}, Further: false}}
}

// timeSchema is what a time looks like.
const timeSchema = `^[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
