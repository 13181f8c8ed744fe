package manifest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// position is a place in a source.
type position struct {
	source *source
	line   int
	column int
}

func (s *source) at(tk *token.Token) position {
	if tk == nil || tk.Position == nil {
		return position{source: s}
	}
	return position{source: s, line: tk.Position.Line, column: tk.Position.Column}
}

// syntaxError is why a source could not be parsed, and where.
type syntaxError struct {
	at      position
	message string
}

func (e *syntaxError) Error() string { return e.message }

// parse gives the bodies of a source's documents. Limits are checked on the tokens,
// before the parser, which recurses and compares keys pairwise, sees them.
func parse(src *source) ([]ast.Node, error) {
	tokens := lexer.Tokenize(string(src.text))
	if err := checkTokens(src, tokens); err != nil {
		return nil, err
	}
	file, err := parseTokens(src, tokens)
	if err != nil {
		return nil, err
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		switch doc.Body.(type) {
		case nil, *ast.NullNode, *ast.CommentGroupNode, *ast.DirectiveNode:
		default:
			bodies = append(bodies, doc.Body)
		}
	}
	return bodies, nil
}

func parseTokens(src *source, tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		// The parser is outside code fed with outside text: a panic in it is a syntax error here.
		if p := recover(); p != nil {
			file, err = nil, &syntaxError{position{source: src, line: 1, column: 1}, "YAML that the parser cannot read"}
		}
	}()
	file, err = parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file, nil
	}
	var located yaml.Error
	if !errors.As(err, &located) {
		return nil, &syntaxError{position{source: src, line: 1, column: 1}, "not valid YAML: " + clip(err.Error(), 200)}
	}
	message, _, _ := strings.Cut(located.GetMessage(), "\n")
	return nil, &syntaxError{src.at(located.GetToken()), "not valid YAML: " + clip(message, 200)}
}

// checkTokens applies the limits on depth, keys and documents.
func checkTokens(src *source, tokens token.Tokens) error {
	var nesting depth
	keys, documents := 0, 1
	if len(tokens) > MaxFileTokens {
		return &syntaxError{src.at(tokens[MaxFileTokens]), fmt.Sprintf("more than %d YAML tokens in one file, the limit; use several files", MaxFileTokens)}
	}
	for _, tk := range tokens {
		if tk.Type == token.MappingValueType {
			keys++
		}
		if tk.Type == token.DocumentHeaderType {
			documents++
			nesting = depth{}
		}
		nesting.see(tk)
		switch {
		case nesting.of() > MaxDepth:
			return &syntaxError{src.at(tk), fmt.Sprintf("nested more than %d levels deep, the limit", MaxDepth)}
		case keys > MaxFileKeys:
			return &syntaxError{src.at(tk), fmt.Sprintf("more than %d keys in one file, the limit; use several files", MaxFileKeys)}
		case documents > MaxFileDocuments+1:
			return &syntaxError{src.at(tk), fmt.Sprintf("more than %d documents in one file, the limit; use several files", MaxFileDocuments)}
		}
	}
	return nil
}

// depth follows nesting over tokens: flow brackets are counted; block levels are the
// increasing columns at which entries and keys begin. What may stand in a row before one
// value (anchors, tags; inside brackets also dashes, question marks and colons) makes the
// parser recurse too.
type depth struct {
	flow    int
	columns []int
	row     int
}

func (d *depth) of() int { return d.flow + len(d.columns) + d.row }

func (d *depth) see(tk *token.Token) {
	switch tk.Type {
	case token.SequenceStartType, token.MappingStartType:
		d.flow++
	case token.SequenceEndType, token.MappingEndType:
		d.flow = max(d.flow-1, 0)
		d.row = 0
	case token.CollectEntryType:
		d.row = 0
	case token.AnchorType, token.TagType, token.AliasType:
		d.row++
	case token.SequenceEntryType, token.MappingKeyType:
		d.begin(tk)
	case token.MappingValueType:
		if tk.Prev != nil {
			d.begin(tk.Prev)
		}
	default:
		if d.flow == 0 && tk.PreviousType() != token.AnchorType { // not an anchor's name
			d.row = 0
		}
	}
}

// begin sees the first token of an entry or key.
func (d *depth) begin(tk *token.Token) {
	if d.flow > 0 {
		d.row++
		return
	}
	d.row = 0
	column := tk.Position.Column
	for len(d.columns) > 0 && d.columns[len(d.columns)-1] >= column {
		d.columns = d.columns[:len(d.columns)-1]
	}
	d.columns = append(d.columns, column)
}
