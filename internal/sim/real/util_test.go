package real

import "flag"

var update = flag.Bool("update", false, "rewrite the tables in pages")
