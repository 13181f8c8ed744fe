// Package catalogue lists the images that burrow knows by name, with where their makers
// publish them. It reads nothing but its own embedded file.
//
//	catalogue.yaml ──▶ Entries ──▶ validate (names) · image list · ensure image (download)
package catalogue
