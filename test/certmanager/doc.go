// Command certmanager runs the part of cert-manager that gpu-binpacker's
// manifests rely on, as one process, for the test bed:
//
//   - the controllers that turn an Issuer and a Certificate into a Secret
//     (controllers.go): issuers, certificates/*, certificaterequests/* with
//     the SelfSigned and the CA issuer,
//   - cainjector, which copies the CA from that Secret into the caBundle of
//     webhook configurations (cainjector.go).
//
// They are cert-manager's own packages, not imitations. A released cert-manager
// ships them as several images; the test bed has no container engine.
package main
