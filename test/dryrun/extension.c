/* SPDX-License-Identifier: Apache-2.0 */
/* An extension of a package, which wants functions of CUDA that no PyTorch and no stand-in has. */

int cublasOfAnExtension(int handle);
int cuOfAnExtension(int handle);
int extension_calls_cuda(void);

int
extension_calls_cuda(void)
{
    return cublasOfAnExtension(1) + cuOfAnExtension(2);
}
