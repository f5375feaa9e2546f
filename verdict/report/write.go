package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"inquest/verdict"
)

// Formats are the names that [Write] takes.
var Formats = []string{"text", "markdown", "html", "json"}

// Write writes the report on v in one of [Formats].
func Write(w io.Writer, v *verdict.Verdict, format string) error {
	switch format {
	case "text":
		return writeText(w, newDocument(v))
	case "markdown":
		return writeMarkdown(w, newDocument(v))
	case "html":
		return page.Execute(w, newDocument(v))
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	default:
		return fmt.Errorf("there is no report in the form %q: use one of %s", format, strings.Join(Formats, ", "))
	}
}

// WriteEncoded writes the report on a verdict in JSON, as it is stored.
func WriteEncoded(w io.Writer, encoded []byte, format string) error {
	var v verdict.Verdict
	if err := json.Unmarshal(encoded, &v); err != nil {
		return fmt.Errorf("cannot read the stored verdict: %w", err)
	}
	return Write(w, &v, format)
}

func writeText(w io.Writer, d document) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n\n%s\n\n", strings.ToUpper(d.Title), strings.Repeat("=", len(d.Title)), printable(d.Summary))
	width := 0
	for _, f := range d.Facts {
		width = max(width, len(f.Name))
	}
	for _, f := range d.Facts {
		fmt.Fprintf(&b, "%-*s  %s\n", width, f.Name, wrap(printable(f.Value), 96-width, strings.Repeat(" ", width+2)))
	}
	for _, s := range d.Sections {
		fmt.Fprintf(&b, "\n%s\n%s\n", s.Title, strings.Repeat("-", len(s.Title)))
		if s.Note != "" {
			fmt.Fprintln(&b, printable(s.Note))
		}
		for _, it := range s.Items {
			fmt.Fprintln(&b, "* "+wrap(printable(it.Text), 96, "  "))
			for _, line := range it.Details {
				fmt.Fprintln(&b, "    "+wrap(printable(line), 92, "    "))
			}
			for _, line := range it.Raw {
				fmt.Fprintln(&b, "    | "+printable(line))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wrap breaks a line between words; lines after the first begin with indent.
func wrap(s string, width int, indent string) string {
	var b strings.Builder
	n := 0
	for i, word := range strings.Fields(s) {
		switch {
		case i == 0:
		case n+1+len(word) > width:
			b.WriteString("\n" + indent)
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += len(word)
	}
	return b.String()
}

// printable replaces control characters, which could move a terminal's cursor:
// evidence holds text that anyone may have sent.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return '\uFFFD'
		}
		return r
	}, s)
}

func writeMarkdown(w io.Writer, d document) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n**%s**\n\n| | |\n|---|---|\n", d.Title, escape(d.Summary))
	for _, f := range d.Facts {
		fmt.Fprintf(&b, "| %s | %s |\n", f.Name, escape(f.Value))
	}
	for _, s := range d.Sections {
		fmt.Fprintf(&b, "\n## %s\n\n", s.Title)
		if s.Note != "" {
			fmt.Fprintf(&b, "%s\n\n", escape(s.Note))
		}
		for _, it := range s.Items {
			fmt.Fprintf(&b, "- %s\n", escape(it.Text))
			for _, line := range it.Details {
				fmt.Fprintf(&b, "  - %s\n", escape(line))
			}
			if len(it.Raw) > 0 {
				fence := "```"
				for strings.Contains(strings.Join(it.Raw, "\n"), fence) {
					fence += "`"
				}
				fmt.Fprintf(&b, "\n  %s\n", fence)
				for _, line := range it.Raw {
					fmt.Fprintf(&b, "  %s\n", printable(line))
				}
				fmt.Fprintf(&b, "  %s\n", fence)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var markdownEscaper = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "|", `\|`, "#", `\#`)

func escape(s string) string { return markdownEscaper.Replace(printable(s)) }

var page = template.Must(template.New("report").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root{color-scheme:light dark;--line:#8884;--dim:#777}
body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{margin:0 0 .25rem}h2{margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
.state{display:inline-block;padding:.1rem .7rem;border-radius:1rem;color:#fff;background:#777;font-size:.9rem}
.confirmed{background:#b3261e}.suspected{background:#9a6700}
.summary{font-size:1.2rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line)}th{width:11rem;font-weight:600}
ul{padding-left:1.2rem}li{margin:.5rem 0}.detail{color:var(--dim);font-size:.92rem}
pre{overflow-x:auto;background:#8881;padding:.6rem .8rem;border-radius:.4rem;font-size:.82rem;line-height:1.45}
</style></head><body>
<h1>Inquest <span class="state {{.State}}">{{.State}}</span></h1>
<p class="summary">{{.Summary}}</p>
<table>{{range .Facts}}<tr><th scope="row">{{.Name}}</th><td>{{.Value}}</td></tr>{{end}}</table>
{{range .Sections}}<section><h2>{{.Title}}</h2>
{{with .Note}}<p>{{.}}</p>{{end}}<ul>{{range .Items}}<li>{{.Text}}
{{range .Details}}<div class="detail">{{.}}</div>{{end}}
{{if .Raw}}<pre>{{range .Raw}}{{.}}
{{end}}</pre>{{end}}</li>{{end}}</ul></section>
{{end}}</body></html>
`))
