package report

import "fluentps/internal/show/page"

// Mark is in every page, so that a page may be replaced and a file of the user is not.
var Mark = page.Mark("report")

const body = `<body>
<a class="skip" href="#figures">Skip to the figures</a>
<header>
<p class="kind">{{.Kind}}</p>
<h1>{{.Title}}{{if .Simulated}} <span class="badge">simulated</span>{{end}}</h1>
<ul class="verdict">{{range .Verdict}}
<li>{{.}}</li>{{end}}
</ul>
<nav aria-label="Parts of this page">{{if .Ranking}}<a href="#comparison">Table</a>{{end}}<a href="#figures">Figures</a><a href="#tables">{{if .Ranking}}More tables{{else}}Table{{end}}</a>{{if .Details}}<a href="#details">Each run</a>{{end}}<a href="#how">How to read it</a></nav>
</header>
<main>
{{range .Damage}}<div class="note" role="note"><p><strong>{{.Folder}}</strong>: this report shows what is there.</p><ul>{{range .Notes}}<li>{{.}}</li>{{end}}</ul></div>
{{end}}
{{with .Advice}}<section aria-label="Advice"><h2>Advice</h2><ul>{{range .}}<li>{{.}}</li>{{end}}</ul></section>{{end}}
{{if .Ranking}}<section id="comparison"><h2>{{.RankingTitle}}</h2>
{{template "table" .Ranking}}</section>{{end}}
<section id="figures"><h2>Figures</h2>
<div class="figures">{{range .Figures}}
<figure id="figure-{{.ID}}">{{.SVG}}</figure>{{end}}
</div>
{{range .Untold}}<p class="muted">{{.}}</p>{{end}}
</section>
<section id="tables"><h2>Tables</h2>
{{range .Tables}}{{template "table" .}}
{{end}}</section>
{{with .Details}}<section id="details"><h2>Each run</h2>
{{range .}}<details id="{{.ID}}"><summary>{{.Label}}</summary>
<p class="muted">{{.Folder}}</p>
<p>{{range .Sentences}}{{.}} {{end}}</p>
{{with .Advice}}<ul>{{range .}}<li>{{.}}</li>{{end}}</ul>{{end}}
<div class="figures">{{range .Figures}}
<figure id="figure-{{.ID}}">{{.SVG}}</figure>{{end}}
</div></details>
{{end}}</section>{{end}}
<section id="how"><h2>How to read it</h2>
<details><summary>What the words mean</summary>
<ul>
<li>Wall time counts from the start of the run, setup included. Time to target is the time of the first snapshot whose evaluation reached the target.</li>
<li>A step is an iteration of the run: one push of every worker. With local steps it is one exchange, and holds many steps of a worker.</li>
<li>Staleness is the version at commit minus the version at pull. Lead is how many iterations a worker is ahead of the slowest when it starts one, by the times at which gradients began to leave.{{.Clocks}}</li>
<li>Blocked time by cause is reconstructed from the times of iterations: a blocked worker waited for the worker whose push landed last before it went on, and for servers and wire after that. Where schemes delayed no pull, nobody waited for another worker.</li>
<li>± is the sample deviation over seeds. Two runs are called level if their difference is within their deviations, or 3 %; a run without other seeds is taken to vary as those with several do.</li>
<li>A series is called what its user chose: the settings that differ, the scheme first. One that is first has won if it has several seeds, and if the gap is larger than what evaluations leave open; else it is ahead.</li>
<li>The wire's limit is the least time in which the slowest network card carries the bytes of an iteration.</li>
</ul></details></section>
</main>
<footer>{{with .Build}}Made by fluentps {{.}}. {{end}}This file loads nothing and holds no script.</footer>
</body>
</html>
`

const list = `<body>
<header><p class="kind">{{.Kind}}</p><h1>{{.Title}}</h1></header>
<main>
{{template "table" .Table}}
<p class="muted">A name leads to the report of its run. fluentps report DIR writes one that is missing.</p>
</main>
<footer>{{with .Build}}Made by fluentps {{.}}. {{end}}This file loads nothing and holds no script.</footer>
</body>
</html>
`

var (
	pageTemplate = page.Parse("report", body, false)
	index        = page.Parse("report", list, false)
)
