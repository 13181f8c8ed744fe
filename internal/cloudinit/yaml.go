package cloudinit

import (
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// yamlText writes v as YAML in which every string value is quoted, so that no reader takes
// it for something else.
func yamlText(v any) ([]byte, error) {
	node, err := yaml.ValueToNode(v, yaml.IndentSequence(true))
	if err != nil {
		return nil, err
	}
	ast.Walk(quoter{}, node)
	return []byte(node.String() + "\n"), nil
}

// quoter quotes the string values below a node; keys are ours and need none.
type quoter struct{}

func (q quoter) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.MappingValueNode:
		quote(n.Value)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			quote(v)
		}
	}
	return q
}

// quote leaves alone what the encoder has quoted on its own: the quotes are part of the
// node's value then, and a value that itself begins with one is always among those.
func quote(n ast.Node) {
	if s, ok := n.(*ast.StringNode); ok && !strings.HasPrefix(s.Value, `"`) {
		s.Token.Type = token.DoubleQuoteType
	}
}
