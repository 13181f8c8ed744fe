package gateway

// Console implements the service.
func (s *Server) Console(stream tunnel) error {
	if s.deps.Consoles == nil {
		return absent("consoles")
	}
	head, err := stream.Recv()
	if err != nil {
		return err
	}
	rec, err := s.server(stream.Context(), head.GetServer())
	if err != nil {
		return err
	}
	console, err := s.deps.Consoles.Console(stream.Context(), rec.Metadata.UID)
	if err != nil {
		return err
	}
	return carry(stream, console, "console of server/"+rec.Metadata.Name)
}
